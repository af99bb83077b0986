"""Memory of every GPU over the launch, as a graph from nothing to all of it."""

from __future__ import annotations

from textual import events
from textual.content import Content
from textual.widgets import Static

from mtpdoctor.tui.launch.state import GpuTrack
from mtpdoctor.tui.launch.wording import gpu_label, spark
from mtpdoctor.tui.styles import beside


class GpuGraphs(Static):
    """A label and a graph for each GPU; two lines each, one where there are many."""

    DEFAULT_CSS = beside(__file__)

    def __init__(self) -> None:
        super().__init__("", markup=False)
        self._tracks: tuple[GpuTrack, ...] = ()

    def set_tracks(self, tracks: tuple[GpuTrack, ...]) -> None:
        self._tracks = tracks
        self._draw()

    def on_resize(self, _: events.Resize) -> None:
        self._draw()

    def _draw(self) -> None:
        if not self._tracks:
            self.update(Content.styled("no GPU memory seen yet", "$text-muted"))
            return
        width = max(self.content_size.width, 10)
        lines: list[Content] = []
        for i, track in enumerate(self._tracks):
            label = gpu_label(i, track)
            full = bool(track.used) and track.used[-1] > 0.97 * track.total
            style = "$text-warning" if full else "$text-primary"
            if len(self._tracks) > 4:
                room = max(width - 30, 8)
                graph = spark(track.used, track.total, room)
                lines.append(Content.assemble(f"{label.partition(',')[0]:<29} ", (graph, style)))
                continue
            lines += [Content(label), Content.styled(spark(track.used, track.total, width), style)]
        self.update(Content("\n").join(lines))
