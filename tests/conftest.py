"""What every test shares: hypothesis without deadlines, golden files on request, skips told."""

import os
import signal
import sys

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "house",
    deadline=None,
    max_examples=int(os.environ.get("DIFFLENS_EXAMPLES", "60")),
    print_blob=True,
    # A change is judged there, not the luck of a draw; new examples are looked for everywhere else.
    derandomize=bool(os.environ.get("CI")),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
settings.load_profile("house")

# A shell ignores Ctrl-C for what it starts in the background, and every child would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite the golden outputs")


@pytest.fixture(autouse=True)
def _same_torch_in_any_order() -> None:
    """Give each test the same draws of torch, whichever test came before it."""
    if torch := sys.modules.get("torch"):
        torch.manual_seed(0)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):  # noqa: ARG001  pytest fixes the names
    """Where everything must be there, a skip is a failure."""
    report = yield
    if (
        report.skipped
        and os.environ.get("DIFFLENS_REQUIRE_ALL")
        and not hasattr(report, "wasxfail")
    ):
        report.outcome = "failed"
        report.longrepr = f"DIFFLENS_REQUIRE_ALL is set, and this was skipped: {report.longrepr}"
    return report
