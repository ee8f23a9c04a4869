"""Deployments: named policies that can be chosen."""

from __future__ import annotations

from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import Q

from agent.dialects import tools


class Deployment(models.Model):
    """A named policy: where it answers, what it reads and how it writes its actions."""

    class Kind(models.TextChoices):
        LOCAL = "local", "our policy server"
        OPENAI = "openai", "external endpoint"
        SCRIPTED = "scripted", "scripted (tests)"

    class Reads(models.TextChoices):
        SCREENSHOT = "screenshot"
        ELEMENTS = "elements"

    class Dialect(models.TextChoices):
        BOX = "box", "UI-TARS 1.0/1.5 (box)"
        POINT = "point", "UI-TARS-2 (point)"
        ELEMENT = "element", "element numbers"
        OPENAI = "openai", "OpenAI computer use (Responses API)"
        OPENAI_PREVIEW = "openai-preview", "OpenAI computer-use-preview (Responses API)"
        ANTHROPIC_2026 = "anthropic-toolset_20260801", "Anthropic computer toolset 2026-08-01"
        ANTHROPIC_2025_11 = "anthropic-20251124", "Anthropic computer tool 2025-11-24"
        ANTHROPIC_2025_01 = "anthropic-20250124", "Anthropic computer tool 2025-01-24"
        ANTHROPIC_2024 = "anthropic-20241022", "Anthropic computer tool 2024-10-22"
        GEMINI = "gemini", "Gemini computer use, 3.5 and later"
        GEMINI_BROWSER = "gemini-browser", "Gemini 2.5 computer use (browser)"
        QWEN = "qwen", "Qwen3-VL computer_use (chat)"
        QWEN25 = "qwen2.5", "Qwen2.5-VL computer_use (chat)"
        OSWORLD = "osworld", "OSWorld computer_13 (chat)"
        PYAUTOGUI = "pyautogui", "pyautogui scripts (chat)"
        ANDROID = "android", "android_world (chat)"
        PLAYWRIGHT = "playwright-mcp", "Playwright MCP (chat)"

    name = models.SlugField(unique=True)
    kind = models.CharField(max_length=16, choices=Kind, default=Kind.LOCAL)
    base_url = models.URLField(blank=True, help_text="empty: the policy server of POLICY_URL")
    model = models.CharField(
        max_length=200, blank=True, help_text="the model's name at the endpoint"
    )
    api_key_variable = models.CharField(
        max_length=64,
        blank=True,
        help_text="environment variable that holds the API key",
    )
    reads = models.CharField(max_length=16, choices=Reads, default=Reads.SCREENSHOT)
    dialect = models.CharField(max_length=32, choices=Dialect, default=Dialect.BOX)
    coordinates = models.CharField(
        max_length=16,
        choices=[
            ("thousandth", "0-1000"),
            ("resized", "pixels after smart_resize"),
            ("frame", "pixels"),
        ],
        default="thousandth",
    )
    candidates = models.PositiveSmallIntegerField(default=3)
    history_n = models.PositiveSmallIntegerField(default=5, help_text="screenshots in the context")
    temperature = models.FloatField(default=0.7)
    max_tokens = models.PositiveIntegerField(default=256)
    # What a local deployment should be serving; the server is told again until it says the same.
    checkpoint_uri = models.CharField(max_length=500, blank=True)
    version = models.CharField(max_length=100, blank=True)
    # The partner of new interactive sessions.
    is_partner = models.BooleanField(default=False)
    script = models.JSONField(default=list, blank=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["is_partner"], condition=Q(is_partner=True), name="one_partner"
            )
        ]

    def __str__(self) -> str:
        return f"{self.name} {self.version}".strip()

    def clean(self) -> None:
        """Refuse what no policy can be made of; raises ValidationError naming the field."""
        if self.dialect not in tools.NAMES:
            return
        if self.kind != self.Kind.OPENAI:
            raise ValidationError({"kind": "only an external endpoint answers in tool calls"})
        if self.reads != self.Reads.SCREENSHOT:
            raise ValidationError({"reads": "models that answer in tool calls read screenshots"})
        for name in ("base_url", "model"):
            if not getattr(self, name):
                raise ValidationError({name: f"the endpoint of {self.dialect} needs it"})
