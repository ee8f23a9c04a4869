import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("agent", "0002_tool_dialects"),
        ("annotation", "0005_hearings"),
    ]

    operations = [
        migrations.AddField(
            model_name="project",
            name="synthesizer",
            field=models.ForeignKey(
                blank=True,
                help_text="the deployment that writes a thought where nothing was said; none: those steps have none",
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to="agent.deployment",
            ),
        ),
        migrations.AddField(
            model_name="recordingstep",
            name="unthought",
            field=models.CharField(blank=True, max_length=300),
        ),
    ]
