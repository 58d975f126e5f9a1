//go:build !race

package blocklist

const raceDetector = false
