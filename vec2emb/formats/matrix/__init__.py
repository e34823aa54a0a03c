"""Sources whose vectors are the rows of a matrix, with the words beside it: models, archives of arrays, objects.

`recognition` tells what a source is without opening it, `opening` opens it, `rows` brings it through the engine; the
others read one kind each. Nothing is unpickled but what the caller allows, and no other library is imported but for
objects of its own.
"""
