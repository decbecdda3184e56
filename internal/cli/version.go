// Package cli is what our commands have in common: how they parse the command
// line, report errors and progress, and describe their build.
package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// Version describes a program's build: its name, module version, commit and Go version.
func Version(program string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return versionOf(program, info)
}

func versionOf(program string, info *debug.BuildInfo) string {
	text := program + " " + info.Main.Version
	if commit := setting(info, "vcs.revision"); commit != "" {
		text += fmt.Sprintf(", commit %.12s of %s", commit, setting(info, "vcs.time"))
		if setting(info, "vcs.modified") == "true" {
			text += ", with changes"
		}
	}
	return fmt.Sprintf("%s, %s %s/%s", text, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// Commit returns the first 12 digits of the commit that the program was built
// from, or "" if that is unknown.
func Commit() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	return fmt.Sprintf("%.12s", setting(info, "vcs.revision"))
}

// setting returns what the go command recorded in a program, or "".
func setting(info *debug.BuildInfo, key string) string {
	for _, s := range info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}
