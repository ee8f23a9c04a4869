"""The picture on the screen by MIT-SHM: under 1 ms a grab. The pointer is not in it.

https://www.x.org/releases/current/doc/xextproto/shm.html
"""

from __future__ import annotations

import ctypes
from ctypes import POINTER, Structure, byref, c_char_p, c_int, c_uint, c_ulong, c_void_p

from recorder.capture.errors import CaptureError

_ALL_PLANES = c_ulong(0xFFFFFFFF)
_ZPIXMAP = 2
_ON_ERROR = ctypes.CFUNCTYPE(c_int, c_void_p)(lambda _: 0)
_ON_REFUSAL = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p)(lambda *_: 0)
_ON_EXIT = ctypes.CFUNCTYPE(None, c_void_p, c_void_p)(lambda *_: None)
_IPC_PRIVATE, _IPC_CREAT, _IPC_RMID = 0, 0o1000, 0


class _Segment(Structure):
    _fields_ = [("shmseg", c_ulong), ("shmid", c_int), ("shmaddr", c_void_p), ("readonly", c_int)]


class _Image(Structure):
    # The head of XImage; the functions that follow are not used.
    _fields_ = [
        *((name, c_int) for name in ("width", "height", "xoffset", "format")),
        ("data", c_void_p),
        *((name, c_int) for name in ("byte_order", "bitmap_unit", "bitmap_bit_order")),
        *((name, c_int) for name in ("bitmap_pad", "depth", "bytes_per_line", "bits_per_pixel")),
    ]


class Screen:
    """Grabs the whole of one display, all monitors at once; for one thread. Raises CaptureError."""

    def __init__(self, name: str) -> None:
        self._x11 = ctypes.CDLL("libX11.so.6")
        self._xext = ctypes.CDLL("libXext.so.6")
        self._libc = ctypes.CDLL(None, use_errno=True)
        _declare(self._x11, self._xext, self._libc)
        self._display = self._x11.XOpenDisplay(name.encode())
        if not self._display:
            raise CaptureError(f"no X server answers on display {name}")
        self._stay()
        number = self._x11.XDefaultScreen(self._display)
        self._root = self._x11.XDefaultRootWindow(self._display)
        self.width = int(self._x11.XDisplayWidth(self._display, number))
        self.height = int(self._x11.XDisplayHeight(self._display, number))
        self._segment = _Segment()
        self._image = self._attach(number)

    def grab(self) -> bytes:
        """Return what is on the screen: rows of `stride` bytes, pixels as BGRX."""
        if not self._xext.XShmGetImage(self._display, self._root, self._image, 0, 0, _ALL_PLANES):
            raise CaptureError("the screen could not be grabbed")
        return ctypes.string_at(self._segment.shmaddr, self.stride * self.height)

    def close(self) -> None:
        self._x11.XCloseDisplay(self._display)
        self._libc.shmdt(self._segment.shmaddr)

    def _stay(self) -> None:
        """Outlive the display, and a grab that it refuses because it was made smaller meanwhile.

        Xlib else ends the process, before the recording is written.
        """
        self._x11.XSetIOErrorHandler(_ON_ERROR)
        self._x11.XSetErrorHandler(_ON_REFUSAL)
        if hasattr(self._x11, "XSetIOErrorExitHandler"):  # since libX11 1.7
            self._x11.XSetIOErrorExitHandler(self._display, _ON_EXIT, None)

    def _attach(self, number: int) -> ctypes._Pointer[_Image]:
        image: ctypes._Pointer[_Image] = self._xext.XShmCreateImage(
            self._display,
            self._x11.XDefaultVisual(self._display, number),
            self._x11.XDefaultDepth(self._display, number),
            _ZPIXMAP,
            None,
            byref(self._segment),
            self.width,
            self.height,
        )
        if not image:
            raise CaptureError("this display has no MIT-SHM: the recorder must run beside it")
        head = image.contents
        if head.bits_per_pixel != 32:
            raise CaptureError(
                f"a 24-bit display is needed, not {head.bits_per_pixel} bits a pixel"
            )
        self.stride = int(head.bytes_per_line)
        shmid = self._libc.shmget(_IPC_PRIVATE, self.stride * self.height, _IPC_CREAT | 0o600)
        address = self._libc.shmat(shmid, None, 0) if shmid >= 0 else None
        if shmid < 0 or address in (None, ctypes.c_void_p(-1).value):
            raise CaptureError(f"no shared memory: errno {ctypes.get_errno()}")
        self._segment.shmid, self._segment.shmaddr = shmid, address
        head.data = address
        attached = self._xext.XShmAttach(self._display, byref(self._segment))
        self._x11.XSync(self._display, 0)
        # Marked for removal now: the segment goes when both sides have let go, however they end.
        self._libc.shmctl(shmid, _IPC_RMID, None)
        if not attached:
            raise CaptureError("the X server does not share memory with this program")
        return image


def _declare(x11: ctypes.CDLL, xext: ctypes.CDLL, libc: ctypes.CDLL) -> None:
    """Say what goes in and comes out: without it ctypes cuts pointers to 32 bits."""
    x11.XOpenDisplay.restype, x11.XOpenDisplay.argtypes = c_void_p, [c_char_p]
    x11.XCloseDisplay.argtypes = x11.XDefaultScreen.argtypes = [c_void_p]
    x11.XDefaultRootWindow.restype, x11.XDefaultRootWindow.argtypes = c_ulong, [c_void_p]
    x11.XDefaultVisual.restype, x11.XDefaultVisual.argtypes = c_void_p, [c_void_p, c_int]
    x11.XSetIOErrorHandler.argtypes = [type(_ON_ERROR)]
    x11.XSetErrorHandler.argtypes = [type(_ON_REFUSAL)]
    if hasattr(x11, "XSetIOErrorExitHandler"):
        x11.XSetIOErrorExitHandler.argtypes = [c_void_p, type(_ON_EXIT), c_void_p]
    for call in (x11.XDisplayWidth, x11.XDisplayHeight, x11.XDefaultDepth, x11.XSync):
        call.argtypes = [c_void_p, c_int]
    xext.XShmCreateImage.restype = POINTER(_Image)
    xext.XShmCreateImage.argtypes = [
        *(c_void_p, c_void_p, c_uint, c_int, c_void_p, c_void_p, c_uint, c_uint)
    ]
    xext.XShmAttach.argtypes = [c_void_p, c_void_p]
    xext.XShmGetImage.argtypes = [c_void_p, c_ulong, c_void_p, c_int, c_int, c_ulong]
    libc.shmat.restype, libc.shmat.argtypes = c_void_p, [c_int, c_void_p, c_int]
    libc.shmget.argtypes = [c_int, ctypes.c_size_t, c_int]
    libc.shmctl.argtypes = [c_int, c_int, c_void_p]
    libc.shmdt.argtypes = [c_void_p]
