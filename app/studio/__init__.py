"""The studio: a page that shows what manifests become, and why they are not ready.

:mod:`app.studio.routes` lists what the page may ask, :mod:`app.studio.models` has its types. Everything is answered by
the functions that the command line prints, and only on the loopback interface; the service does not know this package.
"""
