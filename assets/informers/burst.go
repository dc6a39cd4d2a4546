package main

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// burst is a series of changes: of `count` objects of each kind all are written again, and every third is deleted.
type burst struct {
	namespace string
	count     int
}

var touched = []byte(`{"metadata":{"labels":{"touched":"yes"}}}`)

func (b burst) make(ctx context.Context, config *rest.Config) error {
	client, err := kubernetes.NewForConfig(speaking(config, "application/vnd.kubernetes.protobuf"))
	if err != nil {
		return err
	}
	for number := range b.count {
		meta := metav1.ObjectMeta{Name: fmt.Sprintf("burst-%d", number), Namespace: b.namespace}
		isGone := number%3 == 2
		for _, change := range []func(context.Context, kubernetes.Interface, metav1.ObjectMeta, bool) error{
			pod, deployment, autoscaler,
		} {
			if err := change(ctx, client, meta, isGone); err != nil {
				return err
			}
		}
	}
	return nil
}

func template() corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "burst"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.org/burst"}}},
	}
}

func pod(ctx context.Context, client kubernetes.Interface, meta metav1.ObjectMeta, isGone bool) error {
	pods := client.CoreV1().Pods(meta.Namespace)
	made, err := pods.Create(ctx, &corev1.Pod{ObjectMeta: meta, Spec: template().Spec}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	made.Status.Phase = corev1.PodRunning
	if _, err := pods.UpdateStatus(ctx, made, metav1.UpdateOptions{}); err != nil {
		return err
	}
	if isGone {
		return pods.Delete(ctx, meta.Name, *metav1.NewDeleteOptions(0))
	}
	return nil
}

func deployment(ctx context.Context, client kubernetes.Interface, meta metav1.ObjectMeta, isGone bool) error {
	deployments := client.AppsV1().Deployments(meta.Namespace)
	spec := appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: template().Labels},
		Template: template(),
	}
	if _, err := deployments.Create(ctx, &appsv1.Deployment{ObjectMeta: meta, Spec: spec}, metav1.CreateOptions{}); err != nil {
		return err
	}
	scale, err := deployments.GetScale(ctx, meta.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	scale.Spec.Replicas = 7
	if _, err := deployments.UpdateScale(ctx, meta.Name, scale, metav1.UpdateOptions{}); err != nil {
		return err
	}
	if isGone {
		return deployments.Delete(ctx, meta.Name, metav1.DeleteOptions{})
	}
	return nil
}

func autoscaler(ctx context.Context, client kubernetes.Interface, meta metav1.ObjectMeta, isGone bool) error {
	autoscalers := client.AutoscalingV2().HorizontalPodAutoscalers(meta.Namespace)
	spec := autoscalingv2.HorizontalPodAutoscalerSpec{
		ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{
			APIVersion: "apps/v1", Kind: "Deployment", Name: meta.Name,
		},
		MaxReplicas: 9,
	}
	made := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: meta, Spec: spec}
	if _, err := autoscalers.Create(ctx, made, metav1.CreateOptions{}); err != nil {
		return err
	}
	_, err := autoscalers.Patch(ctx, meta.Name, types.StrategicMergePatchType, touched, metav1.PatchOptions{})
	if err != nil {
		return err
	}
	if isGone {
		return autoscalers.Delete(ctx, meta.Name, metav1.DeleteOptions{})
	}
	return nil
}
