"""Addresses of the sandbox app."""

from django.urls import path

from sandbox import views

urlpatterns = [
    path("sandbox/leases/<int:lease_id>/ticket", views.ticket, name="lease-ticket"),
]
