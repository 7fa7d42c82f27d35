"""What holds for all tests: how Hypothesis looks for examples."""

from hypothesis import HealthCheck, settings

# A busy machine draws and runs an example slowly; that says nothing about either. CI takes the profile "ci" instead,
# which Hypothesis brings along: the same, and the same examples in every run.
settings.register_profile("modelhooks", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("modelhooks")
