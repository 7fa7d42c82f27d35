"""Objects of every kind of ours as users might write them: any field, deterministic, accepted by Kubernetes."""
