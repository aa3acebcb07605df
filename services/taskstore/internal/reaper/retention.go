package reaper

import (
	"context"
	"time"
)

const (
	// How long a message is known after its task is over, or its reply was stored.
	dedupeRetention = 24 * time.Hour
	// How long a direct exchange can be read.
	directRetention = 24 * time.Hour
	// How long the event log goes back.
	eventRetention = 24 * time.Hour
	// How long a dead letter can be redriven, and seen.
	deadLetterRetention = 30 * 24 * time.Hour
)

func (r *Reaper) purgeDedupe(ctx context.Context) (bool, error) {
	n, err := r.Engine.PurgeDedupe(ctx, r.Now().Add(-dedupeRetention), purgeLimit)
	return n == purgeLimit, err
}

func (r *Reaper) purgeDirects(ctx context.Context) (bool, error) {
	n, err := r.Engine.PurgeDirects(ctx, r.Now().Add(-directRetention), purgeLimit)
	return n == purgeLimit, err
}

func (r *Reaper) purgeContexts(ctx context.Context) (bool, error) {
	n, err := r.Engine.PurgeContexts(ctx, r.Now(), purgeLimit)
	return n == purgeLimit, err
}

func (r *Reaper) purgeEvents(ctx context.Context) (bool, error) {
	now := r.Now()
	return false, r.Engine.PurgeEvents(ctx, now, now.Add(-eventRetention))
}

func (r *Reaper) purgeDeadLetters(ctx context.Context) (bool, error) {
	n, err := r.Engine.PurgeDeadLetters(ctx, r.Now().Add(-deadLetterRetention), purgeLimit)
	return n == purgeLimit, err
}
