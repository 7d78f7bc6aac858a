"""How property tests of the domain run: the same examples every time, no deadline on busy machines."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "domain",
    deadline=None,
    derandomize=True,
    max_examples=200,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("domain")
