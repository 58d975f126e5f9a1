// Package static holds the bytes that are served as they are.
package static

import "embed"

// Files holds the assets by name.
//
//go:embed snip.css preview.css snip.js links.js form.js list.js chart.js manage.js visit.js snip.svg
var Files embed.FS
