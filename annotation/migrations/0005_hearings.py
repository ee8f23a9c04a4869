from __future__ import annotations

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("annotation", "0004_contributing")]

    operations = [
        migrations.AddField(
            model_name="recording",
            name="heard",
            field=models.PositiveSmallIntegerField(default=0),
        ),
        migrations.CreateModel(
            name="Hearing",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("engine", models.CharField(max_length=100)),
                ("sound", models.CharField(max_length=120)),
                ("words", models.JSONField()),
                (
                    "recording",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="hearings",
                        to="annotation.recording",
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("recording", "engine", "sound"),
                        name="one_hearing_per_stretch_and_engine",
                    )
                ],
            },
        ),
    ]
