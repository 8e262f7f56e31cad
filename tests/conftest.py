"""What every test shares: hypothesis without deadlines, golden files on request, lanes."""

import gc
import os
import signal
import sys
from collections.abc import Generator
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from lanes import QUICK, SEARCHES, USUAL

# One thread for each process: pytest starts a process for each processor, and threads that wait
# for one another across them cost twenty times what they compute. Children inherit it.
for _library in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")
os.environ.setdefault("KERAS_BACKEND", "torch")  # read once, by whichever test imports it first

# What `make check` does without, installed or not; a test that needs one of them is left out.
FRAMEWORKS = frozenset(
    {"accelerate", "gguf", "h5py", "jax", "keras", "lightning", "mlflow", "onnx", "onnxruntime"}
    | {"optax", "psycopg", "pyarrow", "safetensors", "sklearn", "statsmodels", "torch"}
    | {"backports", "bitsandbytes", "coverage", "jsonschema", "linkify_it", "msgpack", "pandas"}
    | {"powerlaw", "prometheus_client", "pymannkendall", "tensorboard", "tensorflow"}
    | {"blake3", "boto3", "botocore", "cryptography", "huggingface_hub", "moto", "obstore", "ray"}
    | {"tokenizers", "torchmortem", "transformers", "triton", "wandb"}
)


class NoFrameworks(MetaPathFinder):
    """Makes the frameworks look absent, so that the quick tests are the same on every machine."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> ModuleSpec | None:  # noqa: ARG002
        """Raise as for a module that is not installed."""
        if name.partition(".")[0] in FRAMEWORKS:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return None


if QUICK:
    sys.meta_path.insert(0, NoFrameworks())

settings.register_profile(
    "house",
    deadline=None,
    max_examples=USUAL,
    print_blob=True,
    # A change is judged, not the luck of a draw; new examples are looked for in a lane of its own.
    derandomize=not SEARCHES,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
settings.load_profile("house")

# A shell ignores Ctrl-C for what it starts in the background, and every child would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite the golden outputs")


def needs_a_framework(call: pytest.CallInfo[Any]) -> bool:
    """Did a quick test, or the file it is in, fail because a framework is absent?"""
    chain: list[BaseException] = []
    waiting = [call.excinfo.value if QUICK and call.excinfo else None]
    while waiting:
        error = waiting.pop()
        if error is None or error in chain:
            continue
        chain.append(error)
        waiting += [error.__cause__ or error.__context__, *getattr(error, "exceptions", ())]
    absent = (each.name for each in chain if isinstance(each, ModuleNotFoundError))
    # Nameless where a library says in its own words that another one is not installed.
    return any(name is None or name.partition(".")[0] in FRAMEWORKS for name in absent)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Let the garbage collector pass over what lives as long as the tests."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start with the long ones, in their random order: no worker ends alone with one of them."""
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, Any, pytest.CollectReport]:
    """Leave out a file of the quick tests that imports a framework."""
    report = yield
    if report.failed and isinstance(collector, pytest.Module) and needs_a_framework(report.call):
        report.outcome = "skipped"
        report.longrepr = (str(collector.path), 0, "needs a framework")
    return report


@pytest.fixture(autouse=True)
def _same_torch_in_any_order() -> None:
    """Start each test with the same seed of torch, whichever test came before it."""
    if torch := sys.modules.get("torch"):
        torch.manual_seed(0)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Where everything must be there, a skip is a failure; a processor cannot be installed."""
    report = yield
    if report.failed and needs_a_framework(call):
        report.outcome = "skipped"
        report.longrepr = (str(item.path), item.location[1] or 0, "Skipped: needs a framework")
    if (
        report.skipped
        and os.environ.get("DIFFLENS_REQUIRE_ALL")
        and not hasattr(report, "wasxfail")
        and "this processor has no" not in str(report.longrepr)
    ):
        report.outcome = "failed"
        report.longrepr = f"DIFFLENS_REQUIRE_ALL is set, and this was skipped: {report.longrepr}"
    return report
