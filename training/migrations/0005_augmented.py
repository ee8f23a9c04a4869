from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("training", "0004_iterations"),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name="datasetentry",
            name="session_once_per_dataset",
        ),
        migrations.AddField(
            model_name="dataset",
            name="augmented",
            field=models.PositiveIntegerField(default=0),
        ),
        migrations.AddField(
            model_name="dataset",
            name="augmented_steps",
            field=models.PositiveIntegerField(default=0),
        ),
        migrations.AddField(
            model_name="datasetentry",
            name="augmented",
            field=models.BooleanField(default=False),
        ),
        migrations.AddConstraint(
            model_name="datasetentry",
            constraint=models.UniqueConstraint(
                fields=("dataset", "session", "augmented"), name="session_once_per_dataset"
            ),
        ),
    ]
