// Package static holds the bytes that are served as they are.
package static

import "embed"

// Files holds the assets by name.
//
//go:embed *.css
var Files embed.FS
