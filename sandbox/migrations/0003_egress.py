"""What a computer may reach is kept on its own row."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("sandbox", "0002_fleet")]

    operations = [
        migrations.AddField("sandbox", "network", models.CharField(blank=True, default="", max_length=32)),
        migrations.AddField("sandbox", "egress", models.JSONField(default=list)),
    ]
