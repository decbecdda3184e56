package main

import (
	"maps"
	"testing"

	"github.com/criticizer/criticizer/internal/settings"
)

// Each stage that calls something outside has its own limit of attempts at once.
func TestAttemptsAtOnce(t *testing.T) {
	t.Parallel()
	got := map[settings.Role]int{}
	for _, s := range reviewRoles(settings.Worker{FetchAtOnce: 1, LLMAtOnce: 3, NotifyAtOnce: 4}) {
		if s.atOnce != 0 {
			got[s.name] = s.atOnce
		}
	}
	want := map[settings.Role]int{settings.RoleFetch: 1, settings.RoleRedact: 4, settings.RoleLLM: 3, settings.RoleNotify: 4}
	if !maps.Equal(got, want) {
		t.Errorf("limits are %v, want %v", got, want)
	}
}
