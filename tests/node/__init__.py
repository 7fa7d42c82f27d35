"""Tests on one real node: kubelet, containerd, kube-proxy and CoreDNS in separate Linux namespaces.

`make node-test` prepares what is needed (`prepare`), enters the namespaces (`__main__`) and runs the tests there.
"""
