//go:build race

package redaction

const raceEnabled = true
