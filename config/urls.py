"""Every address of the site; each app lists its own."""

from __future__ import annotations

from django.contrib import admin
from django.contrib.auth import views as auth
from django.urls import include, path

urlpatterns = [
    path("accounts/login/", auth.LoginView.as_view(redirect_authenticated_user=True), name="login"),
    path("accounts/logout/", auth.LogoutView.as_view(), name="logout"),
    path("admin/", admin.site.urls),
    path("", include("annotation.urls")),
    path("", include("training.urls")),
    path("", include("sandbox.urls")),
]
