"""Builds the compiled kernel, codec and sketch, once for every Python from 3.11 on (abi3).

Without a C compiler the build warns and goes on: the NumPy twins take their
place, and `difflens --version` says so.
"""

from setuptools import Extension, setup

setup(
    ext_modules=[
        Extension(
            "difflens.measure.kernel._scan",
            sources=[
                "src/difflens/measure/kernel/module.c",
                "src/difflens/measure/kernel/tensors.c",
                "src/difflens/measure/kernel/scan.c",
                "src/difflens/measure/kernel/moments.c",
                "src/difflens/measure/kernel/careful.c",
                "src/difflens/measure/kernel/files.c",
                "src/difflens/measure/kernel/loops_baseline.c",
                "src/difflens/measure/kernel/loops_avx2.c",
                "src/difflens/measure/kernel/loops_avx512.c",
            ],
            depends=[
                f"src/difflens/measure/kernel/{name}.h"
                for name in ("scan", "parts", "loops", "readings", "module")
            ],
            define_macros=[("Py_LIMITED_API", "0x030B0000")],
            # A scan has the same bits everywhere: no sum is fused with a product that rounds.
            extra_compile_args=[
                "-std=gnu11",
                "-O3",
                "-ffp-contract=off",
                "-fno-math-errno",
                "-Wall",
                "-Wextra",
            ],
            py_limited_api=True,
            optional=True,
        ),
        Extension(
            "difflens.measure.codec._codec",
            sources=[
                f"src/difflens/measure/codec/{name}.c"
                for name in (
                    "module",
                    "codec",
                    "sparse",
                    "dense",
                    "predict",
                    "walk_baseline",
                    "walk_avx2",
                    "walk_avx512",
                )
            ],
            depends=[
                f"src/difflens/measure/codec/{name}.h"
                for name in ("codec", "bits", "walk", "walk_width")
            ],
            define_macros=[("Py_LIMITED_API", "0x030B0000")],
            # What a recipe predicts has the same bits everywhere: no sum is fused with a product.
            extra_compile_args=["-std=gnu11", "-O3", "-ffp-contract=off", "-Wall", "-Wextra"],
            py_limited_api=True,
            optional=True,
        ),
        Extension(
            "difflens.measure.sketch._sketch",
            sources=[f"src/difflens/measure/sketch/{name}.c" for name in ("module", "sketch")],
            depends=["src/difflens/measure/sketch/sketch.h"],
            define_macros=[("Py_LIMITED_API", "0x030B0000")],
            extra_compile_args=["-std=gnu11", "-O3", "-ffp-contract=off", "-Wall", "-Wextra"],
            py_limited_api=True,
            optional=True,
        ),
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
