"""Trainers: one file each, run as `python -m training.trainers.NAME RUN_DIR`. No Django here."""
