package main

import (
	"testing"

	"github.com/criticizer/criticizer/internal/config"
)

func TestRewriteStageIsServedByName(t *testing.T) {
	t.Parallel()
	all, err := parseStages(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		if s.name == config.RoleRewrite {
			t.Error("all stages include rewrite")
		}
	}
	if named, err := parseStages([]string{"all"}); err != nil || len(named) != len(all) {
		t.Errorf("--stages all serves %v, %v, want the default", named, err)
	}
	named, err := parseStages([]string{"rewrite"})
	if err != nil || len(named) != 1 || named[0].name != config.RoleRewrite {
		t.Errorf("--stages rewrite serves %v, %v", named, err)
	}
}
