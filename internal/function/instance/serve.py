"""Runs in each instance of a Python function of minik8s: _minik8s_serve.py says what that does. An interpreter compiles the file that it
is given anew at each start; what that imports may have been compiled before, as in the image that minik8s makes.
"""

import _minik8s_serve

_minik8s_serve.main()
