"""The sandbox app over HTTP: tickets to screens, the fleet's pages, its metrics."""
