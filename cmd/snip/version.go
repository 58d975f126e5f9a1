package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// version is set by builds that have no repository at hand, such as that of the
// container image: -ldflags "-X main.version=v1.2.3".
var version string

// versionText names the version and the Go that built it: the version of the
// linker, else the one that go build stamped from the repository or the module.
func versionText() string {
	name := version
	if info, ok := debug.ReadBuildInfo(); ok && name == "" {
		name = info.Main.Version
	}
	if name == "" || name == "(devel)" {
		name = "unreleased"
	}
	return fmt.Sprintf("snip %s (%s)", name, runtime.Version())
}
