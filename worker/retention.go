package main

import (
	"context"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/store"
)

func buildRetention(_ context.Context, p *plant, db *store.DB) (service, error) {
	return service{activities: &activities.Retaining{Log: p.lg, Stored: db}}, nil
}
