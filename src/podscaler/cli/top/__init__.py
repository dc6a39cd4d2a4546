"""`podscaler top`: all autoscalers of a cluster in the terminal, with plots and explanations.

Reading order: `top` is the command; `top_app` the program; `list_screen`, `detail_screen` and `text_screens` what it
shows; `list_rows` and `text_plots` turn views into text. Textual is imported by the screens alone.
May import: everything below `cli`.
"""
