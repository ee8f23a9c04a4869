"""What programs say about their own widgets, by AT-SPI over D-Bus (at-spi2-core, xml/*.xml)."""
