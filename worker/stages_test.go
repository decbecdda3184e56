package main

import (
	"maps"
	"testing"

	"github.com/criticizer/criticizer/internal/config"
)

// Each stage that calls something outside has its own limit of attempts at once.
func TestAttemptsAtOnce(t *testing.T) {
	t.Parallel()
	got := map[config.Role]int{}
	for _, s := range reviewStages() {
		if s.atOnce != nil {
			got[s.name] = s.atOnce(config.Worker{FetchAtOnce: 1, RedactAtOnce: 2, LLMAtOnce: 3, NotifyAtOnce: 4})
		}
	}
	want := map[config.Role]int{config.RoleFetch: 1, config.RoleRedact: 2, config.RoleLLM: 3, config.RoleNotify: 4}
	if !maps.Equal(got, want) {
		t.Errorf("limits are %v, want %v", got, want)
	}
}
