package selection

import (
	"github.com/criticizer/criticizer/internal/glob"
)

// A Kind is the purpose of a file. Kinds are reviewed in their order until the token
// budget is used.
type Kind int

// The kinds, most important first.
const (
	Source Kind = iota
	Test
	Build // build files and configuration
	Docs
)

var kinds = []struct {
	kind     Kind
	patterns glob.List
}{
	{Docs, glob.MustParse(
		"*.{md,markdown,rst,adoc,txt,tex,svg,drawio,po,pot,csv,tsv}", "docs/**", "doc/**", "license*", "changelog*", "authors*", "notice*",
	)},
	{Test, glob.MustParse(
		"*_test.*", "test_*.*", "*.{test,spec}.*", "*{tests,test}.{cs,java,kt,cpp,h,swift,php}", "conftest.py", "*_tb.{v,sv,vhd,vhdl}",
		"tests/**", "test/**", "__tests__/**", "spec/**", "testdata/**", "fixtures/**", "testing/**",
	)},
	{Build, glob.MustParse(
		"*.{json,yaml,yml,toml,ini,cfg,conf,xml,props,targets,csproj,vcxproj,sln,gradle,mk,cmake,bazel,bzl,uproject,uplugin,xdc,sdc,tcl,editorconfig}",
		"makefile*", "cmakelists.txt", "jamfile*", "jamrules", "dockerfile*", "build", "workspace", "go.mod", ".gitignore", ".p4ignore", "*.{build,target}.cs",
	)},
}

// KindOf returns the kind of a file by its depot path.
func KindOf(depotPath string) Kind {
	if _, ok := notDocs.Match(depotPath); ok {
		return Build
	}
	for _, k := range kinds {
		if _, ok := k.patterns.Match(depotPath); ok {
			return k.kind
		}
	}
	return Source
}

// notDocs look like documents but configure builds.
var notDocs = glob.MustParse("cmakelists.txt", "requirements*.txt", "constraints*.txt")

// risky are paths of code whose defects are expensive.
var risky = glob.MustParse(
	"*{auth,login,session,token,passw,credential,permission,acl,crypt,secur,sanitiz,escap}*",
	"{auth,security,crypto,permissions,payments,billing,migrations}/**",
	"*{payment,billing,migration,lock,mutex,thread,concurren,atomic,alloc,parser,deserializ,unsafe}*", "*.sql",
)

// IsRisky reports whether the path suggests code whose defects are expensive.
func IsRisky(depotPath string) bool {
	_, ok := risky.Match(depotPath)
	return ok
}
