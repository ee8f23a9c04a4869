"""Every address of the site; each app lists its own."""

from __future__ import annotations

import logging
from importlib.util import find_spec

from django.contrib import admin
from django.contrib.auth import views as auth
from django.urls import include, path

urlpatterns = [
    path("accounts/login/", auth.LoginView.as_view(redirect_authenticated_user=True), name="login"),
    path("accounts/logout/", auth.LogoutView.as_view(), name="logout"),
    path("admin/", admin.site.urls),
]
for app in ("annotation", "training", "sandbox"):
    if find_spec(f"{app}.urls"):
        try:
            urlpatterns.append(path("", include(f"{app}.urls")))
        except ImportError as error:
            logging.getLogger(__name__).error("%s.urls: %s", app, error)
