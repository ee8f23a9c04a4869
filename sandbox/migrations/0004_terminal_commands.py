from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("sandbox", "0003_egress"),
    ]

    operations = [
        migrations.AddField(
            model_name="inputevent",
            name="text",
            field=models.TextField(blank=True, default=""),
            preserve_default=False,
        ),
        migrations.AlterField(
            model_name="inputevent",
            name="kind",
            field=models.CharField(
                choices=[("pointer", "Pointer"), ("key", "Key"), ("command", "Command")],
                max_length=8,
            ),
        ),
    ]
