package gateway

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// Stop ends streams and waits at once, so that their senders go on elsewhere,
// lets other requests finish while ctx lasts, and then cuts them off.
func (s *Service) Stop(ctx context.Context) error {
	s.mu.Lock()
	started := s.http != nil
	s.stopped = true
	s.mu.Unlock()

	s.operations.Drain()
	var httpErr, grpcErr error
	var servers sync.WaitGroup
	if started {
		servers.Go(func() { httpErr = s.stopHTTP(ctx) })
	}
	servers.Go(func() { grpcErr = s.stopGRPC(ctx) })
	servers.Wait()
	s.serving.Wait()
	watchErr := s.watcher.Stop(ctx)
	if watchErr != nil {
		watchErr = fmt.Errorf("stop watcher: %w", watchErr)
	}
	return errors.Join(httpErr, grpcErr, watchErr)
}

func (s *Service) stopHTTP(ctx context.Context) error {
	err := s.http.Shutdown(ctx)
	if err == nil {
		return nil
	}
	_ = s.http.Close() // what Shutdown waited for in vain
	return fmt.Errorf("stop HTTP: %w", err)
}

func (s *Service) stopGRPC(ctx context.Context) error {
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		s.grpc.GracefulStop()
	}()
	select {
	case <-stopped:
		return nil
	case <-ctx.Done():
		s.grpc.Stop()
		<-stopped
		return fmt.Errorf("stop gRPC: %w", context.Cause(ctx))
	}
}
