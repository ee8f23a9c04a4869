"""What a checkpoint, a dataset or a session was made from, and what was made of it.

`links` holds who was made from whom, `graph` one picture's nodes and edges, `facts` what they are
called, `layout` where they stand. Data flows along an edge: from sessions to weights to what serves.
"""

from training.lineage.build import graph_of
from training.lineage.graph import Edge, Graph, Key, Node
from training.lineage.layout import Picture, draw

__all__ = ["Edge", "Graph", "Key", "Node", "Picture", "draw", "graph_of"]
