"""Calls admission webhooks for writes, and conversion webhooks for custom resources in other versions.

Entry point: `webhook_admission.WebhookAdmission`, which `podscaler up` sets as the admission of `registry.objects`.
Reading order: `configurations` (the stored webhooks), `matching` (which of them a write calls), `admission_reviews`
(request and response), `webhook_client` (HTTPS), `webhook_admission`; `conversion_webhooks` for conversion.
May import: `apiserver.handlers` and below, `controlplane.aggregator`.
"""
