package blocklist

import (
	_ "embed"
	"strings"
)

//go:embed shorteners.txt
var shorteners string

// Shorteners returns the list of other public URL shorteners. A link to a link
// hides where it ends, and can be turned round after it was looked at.
func Shorteners() *List {
	list, _, err := Parse(strings.NewReader(shorteners))
	if err != nil {
		panic(err) // part of the program, and read by its tests
	}
	return list
}
