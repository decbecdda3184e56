// Package cli holds the habits that the commands of this module share: what a build
// says of itself, what a flag wants, and a sign of life from whatever takes long.
package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// Version is what a program says of its build: its name, the version of the
// module, the commit it was built from, and by what.
func Version(program string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return versionOf(program, info)
}

func versionOf(program string, info *debug.BuildInfo) string {
	built := map[string]string{}
	for _, s := range info.Settings {
		built[s.Key] = s.Value
	}
	text := program + " " + info.Main.Version
	if commit := built["vcs.revision"]; commit != "" {
		text += fmt.Sprintf(", commit %.12s of %s", commit, built["vcs.time"])
		if built["vcs.modified"] == "true" {
			text += ", with changes"
		}
	}
	return fmt.Sprintf("%s, %s %s/%s", text, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// BuildDate is the day of the commit that the program was built from, or empty.
func BuildDate() string { return prefix(setting("vcs.time"), len("2006-01-02")) }

// Commit is the commit that the program was built from, in 12 digits, or empty.
func Commit() string { return prefix(setting("vcs.revision"), 12) }

// setting is what the go command recorded in this program, or empty.
func setting(key string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}

func prefix(s string, n int) string { return s[:min(len(s), n)] }
