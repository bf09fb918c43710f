"""Explorers: pictures that follow their controls, in JupyterLab and in the web book.

An explorer is a pure function from settings to a drawing and a finding. It's written once, in Python that imports
neither torch nor numpy nor matplotlib, so that it runs in a notebook's kernel and, through Pyodide, in a reader's page:

    from course_utils.explorers import roofline

    roofline.explore(card="H100 SXM", m=64)
"""

from course_utils.explorers.explorer import Explorer, Impossible, Panel, Picture

__all__ = ["Explorer", "Impossible", "Panel", "Picture"]
