package main

import "testing"

func TestIsNewEnough(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"temporal version 1.5.1 (Server 1.29.1, UI 2.42.1)":     true,
		"temporal version 1.5.0":                                true,
		"temporal version 2.0.0 (Server 2.1.0)":                 true,
		"temporal version 1.10.0":                               true,
		"temporal version 1.4.9 (Server 1.28.0, UI 2.39.0)":     false,
		"temporal version 0.0.0-DEV (Server 1.29.1, UI 2.42.1)": false,
		"command not found":                                     false,
		"":                                                      false,
	} {
		if got := isNewEnough(text); got != want {
			t.Errorf("isNewEnough(%q) = %t", text, got)
		}
	}
}
