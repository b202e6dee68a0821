"""Charts of the report as still pictures: for paper, and for readers without scripts.

A chart is Vega-Lite data, which the browser draws. This folder draws the part of that grammar that the charts of this
package use, with the same scales, ticks and places, in plain Python: a page with thirty charts would otherwise wait for
a JavaScript engine. What is not in that part is refused and never drawn wrongly.
"""

from evenhand.report.stills.picture import DrawingError, picture

__all__ = ["DrawingError", "picture"]
