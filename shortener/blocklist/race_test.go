//go:build race

package blocklist

// raceDetector says that times measure the detector.
const raceDetector = true
