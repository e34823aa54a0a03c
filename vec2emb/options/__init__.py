"""Every option once: its name, type, choices, default and help; command lines, checks and signatures follow."""
