"""Generated objects of all our kinds as users might write them: any field, deterministic, accepted by Kubernetes."""
