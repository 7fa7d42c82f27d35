"""Settings for all tests: how Hypothesis searches for examples."""

from hypothesis import HealthCheck, settings

# A busy machine is slow to generate and run an example, which is no failure. CI uses Hypothesis' own profile "ci",
# which is the same, but has the same examples in every run.
settings.register_profile("modelhooks", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("modelhooks")
