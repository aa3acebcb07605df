package journal

import (
	"fmt"
	"strings"
)

// Sign puts a run's id in front of the text of a chunk or message, so that all
// that is written shows who wrote it.
func Sign(run, text string) string { return run + ": " + text }

// Signed takes such a text apart; ok is false for one that no run has signed.
func Signed(text string) (run, rest string, ok bool) { return strings.Cut(text, ": ") }

// Chunk is the text of chunk n, from 1, of artifact a1 of total chunks, before it is signed.
func Chunk(n, total int) string { return fmt.Sprintf("chunk %d/%d", n, total) }

// Quote is the text of artifact "answer" with which a task that asked repeats
// the text of the answer, before it is signed.
func Quote(answer string) string { return "you said " + answer }
