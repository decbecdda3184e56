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
func BuildDate() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.time" {
			return s.Value[:min(len(s.Value), len("2006-01-02"))]
		}
	}
	return ""
}
