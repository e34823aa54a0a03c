"""The bundle on disk: its files, its settings, where each row comes from, how it is read and published."""
