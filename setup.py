"""Builds the compiled kernel, once for every Python from 3.11 on (abi3).

Without a C compiler the build warns and goes on: the NumPy twin takes the
kernel's place, and `difflens --version` says so.
"""

from setuptools import Extension, setup

setup(
    ext_modules=[
        Extension(
            "difflens.kernel._scan",
            sources=[
                "src/difflens/kernel/module.c",
                "src/difflens/kernel/tensors.c",
                "src/difflens/kernel/scan.c",
                "src/difflens/kernel/moments.c",
                "src/difflens/kernel/careful.c",
                "src/difflens/kernel/files.c",
                "src/difflens/kernel/loops_baseline.c",
                "src/difflens/kernel/loops_avx2.c",
                "src/difflens/kernel/loops_avx512.c",
            ],
            depends=[
                f"src/difflens/kernel/{name}.h"
                for name in ("scan", "parts", "loops", "readings", "module")
            ],
            define_macros=[("Py_LIMITED_API", "0x030B0000")],
            extra_compile_args=[
                "-std=gnu11",
                "-O3",
                "-ffp-contract=fast",
                "-fno-math-errno",
                "-Wall",
                "-Wextra",
            ],
            py_limited_api=True,
            optional=True,
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
