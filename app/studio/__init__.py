"""The studio: a page that shows what manifests become, and why they are not ready.

:mod:`app.studio.routes` lists what the page may ask, :mod:`app.studio.models` has its types. The answers come from the
functions behind the command line. Only the loopback interface is served; the service does not import this package.
"""
