"""One real node: kubelet, containerd, kube-proxy and CoreDNS in namespaces of their own, and what only they can show.

`make node-test` makes what it needs (`prepare`), enters the namespaces (`__main__`) and runs the tests there.
"""
